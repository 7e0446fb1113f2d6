-- What each request to a model took. Of one that is under way, `beat` is the last sign of life of who waits for the reply,
-- `prompt` is an estimate, and `most_in` and `most_out` are the tokens that it may take: they are reserved for it.
create table spent (
    seq integer primary key autoincrement,
    id text not null unique,
    at real not null,
    turn text not null,  -- '' if no turn asked
    line text not null,
    agent text generated always as (
        iif(instr(line, '/') > 0, substr(line, 1, instr(line, '/') - 1), line)
    ) virtual,
    unattended integer not null,
    model text not null,
    prompt integer not null,
    cached integer not null,
    completion integer not null,
    most_in integer not null default 0,
    most_out integer not null default 0,
    beat real
) strict;
create index spent_at on spent (at);
create index spent_turn on spent (turn);
create index spent_line on spent (line);
create index spent_agent on spent (agent);

-- A cap on spending that this user set, beside those in the settings; a null amount lifts the program's own. `seal` tells
-- it from a stranger's row.
create table cap (
    name text primary key,
    amount real,
    at real not null,
    seal text not null
) strict, without rowid;

-- While there is a row, nothing runs by itself: no turn of a timer, of another agent, or of a program without a terminal.
create table pause (
    at real primary key,
    why text not null
) strict, without rowid;
