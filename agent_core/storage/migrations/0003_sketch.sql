-- What functions compute, as the gate compares it: derived from their texts, made anew where it lacks.
create table sketch (
    key text primary key,
    sketch text not null
) strict, without rowid;
