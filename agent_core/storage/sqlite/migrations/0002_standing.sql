-- Single calls are numbered per function, so that the oldest can go; what they come to is kept for ever.
alter table call rename to old_call;

create table call (
    function text not null,
    n integer not null,
    version text not null,
    turn text not null,
    outcome text not null,  -- as published; `documented` is an exception that the docstring names
    error text not null,
    message text not null,
    seconds real not null,
    memory integer,  -- bytes; null where it was not measured
    at real not null,
    primary key (function, n)
) strict, without rowid;

insert into call
    select function, row_number() over (partition by function order by seq), version, turn, outcome, '', '',
        seconds, null, at
    from old_call;

-- How often a version of a function ended otherwise than by returning.
create table call_kind (
    function text not null,
    version text not null,
    outcome text not null,
    error text not null,
    calls integer not null,
    last real not null,
    primary key (function, version, outcome, error)
) strict, without rowid;

insert into call_kind
    select function, version, outcome, '', count(*), max(at) from old_call where outcome <> 'returned'
    group by function, version, outcome;

alter table call_total add column worst integer not null default 0;  -- the longest row of failures since a release
alter table call_total add column since real;  -- when the row of returns began that still holds
alter table call_total add column worked real;  -- the last return
alter table call_total add column longest real not null default 0;
alter table call_total add column memory integer;

update call_total set
    worst = failing,
    longest = coalesce(
        (select max(seconds) from old_call as c
         where c.function = call_total.function and c.version = call_total.version), 0),
    worked = (
        select max(at) from old_call as c
        where c.function = call_total.function and c.version = call_total.version and c.outcome = 'returned'),
    since = case when holding > 0 then (
        select min(at) from old_call as c
        where c.function = call_total.function and c.version = call_total.version and c.outcome = 'returned'
            and c.seq > coalesce(
                (select max(f.seq) from old_call as f
                 where f.function = c.function and f.version = c.version
                    and f.outcome in ('raised', 'timed_out', 'killed')), 0)) end;

create index call_failing on call_total (worst) where worst > 0;

drop table old_call;

-- A human let a function out of quarantine.
create table release (
    seq integer primary key,
    function text not null,
    version text not null,
    at real not null
) strict;

create index release_function on release (function, seq);
