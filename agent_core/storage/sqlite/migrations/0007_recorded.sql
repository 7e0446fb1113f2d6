-- Calls with all that they got through `self`, to be made again.
create table recorded (
    n integer primary key autoincrement,
    function text not null,
    outcome text not null,
    turn text not null,
    at real not null,
    data text not null
) strict;

create index recorded_function on recorded (function, n);
