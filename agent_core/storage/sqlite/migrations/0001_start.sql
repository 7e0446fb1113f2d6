-- The journal: events in an inbox, turns that take them, entries of turns.
-- `seq` is the order; `id` is a name (uuid7) that nothing is ordered by.

create table event (
    seq integer primary key autoincrement,
    id text not null unique,
    agent text not null,
    key text,
    kind text not null,
    payload text not null,
    due real not null,
    timed integer not null,  -- 0: due at once, even if the clock goes back
    at real not null,
    turn integer references turn (seq),  -- who took it; null while it waits
    unique (agent, key)
) strict;

create index event_waiting on event (agent, due, seq) where turn is null;

create table turn (
    seq integer primary key autoincrement,
    id text not null unique,
    agent text not null,
    event integer not null references event (seq),
    state text not null default 'open',
    attempt integer not null,
    n integer not null default 0,
    owner text not null,
    cancelled integer not null default 0,
    hidden integer not null default 0,
    started real not null,
    ended real
) strict;

create index turn_agent on turn (agent, seq);
create unique index turn_open on turn (agent) where state = 'open';

-- One b-tree serves the fence, the turn and the history: seq is turn.seq << 20 | n.
create table entry (
    seq integer primary key,
    turn integer generated always as (seq >> 20) virtual references turn (seq),
    n integer generated always as (seq & 1048575) virtual,
    kind text not null,
    payload text not null,
    attempt integer not null,
    at real not null
) strict;

-- Texts by content hash, each once: module sources, instructions, lists of functions shown.
create table text (
    hash text primary key,
    text text not null
) strict;

-- The history of modules: version null is a removal.
create table change (
    seq integer primary key autoincrement,
    module text not null,
    version text references text (hash),
    by text not null,
    turn text not null,
    model text not null,
    reason text not null,
    at real not null
) strict;

create index change_module on change (module, seq);
create index change_version on change (version, seq);

create table manifest (
    module text primary key,
    version text not null references text (hash)
) strict, without rowid;

create table verdict (
    version text not null,
    function text not null,
    verdict text not null,
    at real not null,
    primary key (version, function)
) strict;

create table pending (
    function text primary key,
    candidate text not null,
    at real not null
) strict;

-- Writes into files that were begun and not ended; the empty version stands for a file that goes away.
create table intent (
    seq integer primary key,
    path text not null,
    version text not null,
    text text,
    expected text,
    at real not null,
    unique (path, version)
) strict;

-- Every call, and what they come to per version, so that nobody adds up a million rows at start.
create table call (
    seq integer primary key,
    function text not null,
    version text not null,
    turn text not null,
    outcome text not null,
    seconds real not null,
    at real not null
) strict;

create table call_total (
    function text not null,
    version text not null,
    calls integer not null,
    returned integer not null,
    failed integer not null,
    failing integer not null,
    holding integer not null,
    first real not null,
    last real not null,
    seconds real not null,
    primary key (function, version)
) strict, without rowid;

create table reading (
    path text primary key,
    mtime_ns integer not null,
    size integer not null,
    inode text not null,  -- may need all of 64 bits, and SQLite's integers have a sign
    version text not null,
    reading text not null
) strict;

create table pin (
    agent text not null,
    function text not null,
    primary key (agent, function)
) strict, without rowid;
