-- What a person pinned, which no agent changes: a name, a module or a pattern. `holds` is 0 for one that a person let go
-- though a wider pin names it. The functions that are always shown to an agent are its own set.
alter table pin rename to own_set;
alter index pin_pkey rename to own_set_pkey;

create table pin (
    pattern text collate "C" primary key,
    holds integer not null,
    at double precision not null
);
