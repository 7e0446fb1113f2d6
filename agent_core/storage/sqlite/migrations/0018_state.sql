-- The small value that a function keeps for itself, as each of its newest turns left it: the last row is the one in force.
create table state (
    n integer primary key autoincrement,
    function text not null,
    turn text not null,
    value text not null,  -- JSON
    at real not null
) strict;

create index state_function on state (function, n);
