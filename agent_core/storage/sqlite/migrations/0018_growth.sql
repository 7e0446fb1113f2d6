-- The small value that a function keeps for itself, as each of its newest turns left it: the last row is the one in force.
create table state (
    n integer primary key autoincrement,
    function text not null,
    turn text not null,
    value text not null,  -- JSON
    at real not null
) strict;

create index state_function on state (function, n);

-- The grown functions that a turn's request probably needed, each shown to the model or, at random, masked.
create table exposure (
    n integer primary key autoincrement,
    turn text not null,
    function text not null,
    version text not null,
    masked integer not null,
    model text not null
) strict;

-- What tending did, so that it is undone: a function that was changed, deleted or archived, with its versions.
create table tended (
    n integer primary key autoincrement,
    run text not null,
    function text not null,
    kind text not null,
    before text not null,
    after text not null,
    note text not null,
    at real not null,
    undone integer not null default 0
) strict;

-- The shapes of results, as each agent, or everybody, may know them.
create table seen (
    agent text not null,
    function text not null,
    version text not null,
    shape text not null,  -- JSON
    primary key (agent, function)
) strict, without rowid;

-- The forms of functions are written anew when they are needed, and no longer kept.
drop table if exists sketch;
