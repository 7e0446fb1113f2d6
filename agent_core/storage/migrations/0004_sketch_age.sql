-- The oldest sketches go where there are many: a row's number says how old it is.
drop table sketch;
create table sketch (
    n integer primary key,
    key text not null unique,
    sketch text not null
) strict;
