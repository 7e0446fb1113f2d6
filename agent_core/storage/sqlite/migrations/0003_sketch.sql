-- What functions compute, as the gate compares it: derived from their texts, made anew where it lacks.
-- A row's number says how old it is: where there are many, the oldest go.
create table sketch (
    n integer primary key,
    key text not null unique,
    sketch text not null
) strict;
