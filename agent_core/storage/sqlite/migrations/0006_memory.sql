-- Memory: blocks, sections, passages, sources, the index of what was said, and what is searched.

create table agent (
    name text primary key,
    settings text not null  -- JSON
) strict, without rowid;

create table block (
    seq integer primary key,
    id text not null unique,
    label text not null,
    value text not null,  -- JSON: a text or a list of texts
    chars integer not null,  -- its limit
    description text not null,
    read_only integer not null,
    shared integer not null,
    version integer not null,
    edited real not null
) strict;

create index block_shared on block (label) where shared;

-- Which agent has which block; one that was taken away stays with attached = 0.
create table holding (
    agent text not null,
    block text not null references block (id) on delete cascade,
    position integer not null,
    attached integer not null,
    primary key (agent, block)
) strict, without rowid;

create index holding_block on holding (block);

create table block_change (
    block text not null references block (id) on delete cascade,
    version integer not null,
    value text not null,
    what text not null,
    by text not null,
    agent text not null,
    turn text not null,
    at real not null,
    primary key (block, version)
) strict;

create table section (
    agent text not null,
    name text not null,
    position integer not null,
    text text not null,
    chars integer not null,
    edited real not null,
    primary key (agent, name)
) strict;

create table passage (
    seq integer primary key autoincrement,
    id text not null,
    agent text not null,
    text text not null,
    words text not null,
    at real not null,
    tags text not null,  -- JSON
    source text not null,
    place text not null,
    document text not null,
    n integer not null,
    unique (agent, id)
) strict;

create index passage_agent on passage (agent, seq);
create index passage_document on passage (agent, document, n) where document <> '';

create table tag (
    agent text not null,
    tag text not null,
    passage integer not null references passage (seq) on delete cascade,
    primary key (agent, tag, passage)
) strict, without rowid;

create index tag_passage on tag (passage);

create table document (
    seq integer primary key autoincrement,
    agent text not null,
    hash text not null,
    name text not null,
    kind text not null,
    at real not null,
    done integer not null,
    total integer not null,
    complete integer not null,
    unique (agent, hash)
) strict;

-- `seq` is the journal entry's.
create table said (
    seq integer primary key,
    agent text not null,
    n integer not null,
    text text not null,
    words text not null,
    at real not null,
    speaker text not null,
    session integer not null,
    length integer not null,
    asks integer not null,
    timed integer not null,
    turn text not null
) strict;

create index said_agent on said (agent, n);
create index said_at on said (agent, at, seq);

-- What one search looks through: an agent's words (space '') or vectors of one space, on one shelf. Rows are numbered
-- in the order of coming, `rows` counts all that ever came and `gone` those that went: who keeps some of it in memory
-- sees by these two what is new. A number is never given again.
create table lane (
    id integer primary key autoincrement,
    agent text not null,
    shelf text not null,
    space text not null,
    rows integer not null default 0,
    gone integer not null default 0,
    unique (agent, shelf, space)
) strict;

-- `count` rows of a lane from number `first` on: the `seq` of each as int64, the size of each as uint16, and
-- that many items of each: words as (CRC-32 of the stem, times) of 5 bytes, vectors as int8. Little-endian.
create table sheet (
    seq integer primary key,
    lane integer not null references lane (id) on delete cascade,
    first integer not null,
    count integer not null,
    seqs blob not null,
    sizes blob not null,
    body blob not null
) strict;

create unique index sheet_first on sheet (lane, first, count);

-- Rows of a lane that went: those of `seq` with a number below `upto`.
create table gone (
    lane integer not null references lane (id) on delete cascade,
    n integer not null,
    seq integer not null,
    upto integer not null,
    primary key (lane, n)
) strict, without rowid;

create table vector (
    lane integer not null references lane (id) on delete cascade,
    seq integer not null,
    vector blob not null,  -- little-endian float32
    primary key (lane, seq)
) strict;

-- An agent can be deleted whole. The entries' reference to their turn goes: without an index each turn that is
-- deleted would read all of them, and an index would be one more page with each append. `check` looks for it instead.
create table journal (
    seq integer primary key,
    turn integer generated always as (seq >> 20) virtual,
    n integer generated always as (seq & 1048575) virtual,
    kind text not null,
    payload text not null,
    attempt integer not null,
    at real not null
) strict;

insert into journal (seq, kind, payload, attempt, at) select seq, kind, payload, attempt, at from entry;
drop table entry;
alter table journal rename to entry;

create index entry_summary on entry (seq) where kind = 'summary';
create index event_turn on event (turn) where turn is not null;
create index turn_event on turn (event);
