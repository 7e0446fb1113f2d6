-- A human's yes to what a function may reach, for exactly one content; `seal` tells it from a stranger's row.
create table yes (
    seq integer primary key autoincrement,
    function text not null,
    digest text not null,
    content text not null,  -- JSON: [module, version] of the function's module and of all that it imports
    grants text not null,  -- JSON
    by text not null,
    seal text not null,
    at real not null,
    unique (function, digest)
) strict;
