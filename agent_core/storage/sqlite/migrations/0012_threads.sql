-- Messages between agents: the thread that they belong to, what each agent spent in it, and who waits for an answer.
create table thread (
    id text primary key,  -- the turn that began it
    agent text not null,
    limits text not null,  -- amounts by name, as JSON
    state text not null default 'open',  -- or stopped, or stuck: then a person decides
    why text not null default '',
    started real not null
) strict, without rowid;

create table spending (
    thread text not null references thread (id) on delete cascade,
    agent text not null,
    hops integer not null default 0,  -- the longest way of a message, all others are sums
    messages integer not null default 0,
    steps integer not null default 0,
    tokens integer not null default 0,
    cost real not null default 0,
    seconds real not null default 0,
    helpers integer not null default 0,
    depth integer not null default 0,
    primary key (thread, agent)
) strict, without rowid;

-- An ask is open until it has its answer, or the reason why there is none; the other kinds are 'sent'.
create table message (
    seq integer primary key autoincrement,
    id text not null unique,
    thread text not null references thread (id) on delete cascade,
    kind text not null,
    sender text not null,
    recipient text not null,
    text text not null,
    turn text not null,  -- the sender's
    hops integer not null,
    owes text not null,  -- the ask that the sender still has to answer, or that it hands on
    state text not null,
    answer text not null default '',
    at real not null,
    due real,
    ended real
) strict;

create index message_thread on message (thread, seq);
create index message_turn on message (turn) where kind = 'ask';
create index message_open on message (sender) where state = 'open';

create table paused (
    agent text primary key,
    why text not null,
    at real not null
) strict, without rowid;
