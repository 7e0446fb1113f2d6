-- The schema of the state file: the journal (events in an inbox, turns that take them, entries of turns), functions,
-- memory, messages between agents, and what is searched. In the journal, `seq` is the order; `id` is a name (uuid7) that
-- nothing is ordered by. The texts are those that SQLite stores, since a file whose own differ counts as damaged.

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
create index event_turn on event (turn) where turn is not null;

-- `streamed` is what was shown so far of a reply that is still coming: it becomes the interrupted reply if the program is
-- killed.
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
, streamed text not null default '') strict;
create index turn_agent on turn (agent, seq);
create unique index turn_open on turn (agent) where state = 'open';
create index turn_event on turn (event);

-- One b-tree serves the fence, the turn and the history: seq is turn.seq << 20 | n. Its turn is no foreign key: without an
-- index each turn that is deleted would read all entries, and an index would be one more page with each append. `check`
-- looks for it instead.
create table "entry" (
    seq integer primary key,
    turn integer generated always as (seq >> 20) virtual,
    n integer generated always as (seq & 1048575) virtual,
    kind text not null,
    payload text not null,
    attempt integer not null,
    at real not null
) strict;
create index entry_summary on entry (seq) where kind = 'summary';

-- Texts by content hash, each once: module sources, instructions, lists of functions shown.
create table text (
    hash text primary key,
    text text not null
) strict;

-- The history of modules: version null is a removal. `kept_out` has the functions of the text that were kept out with this
-- version, separated by blanks: another file has a function of that name, or it is built in.
create table change (
    seq integer primary key autoincrement,
    module text not null,
    version text references text (hash),
    by text not null,
    turn text not null,
    model text not null,
    reason text not null,
    at real not null
, kept_out text not null default '') strict;
create index change_module on change (module, seq);
create index change_version on change (version, seq);
create index change_kept_out on change (module) where kept_out <> '';

create table manifest (
    module text primary key,
    version text not null references text (hash)
) strict, without rowid;

create table verdict (
    version text not null,
    function text not null,
    verdict text not null,
    at real not null, seal text not null default '',
    primary key (version, function)
) strict;

create table pending (
    function text primary key,
    candidate text not null,
    at real not null
, seal text not null default '') strict;

-- Writes into files that were begun and not ended; the empty version stands for a file that goes away. `tended` is a
-- sealed mark of a write that is a part of more, and is put back; '' for one that is all of its change.
create table intent (
    seq integer primary key,
    path text not null,
    version text not null,
    text text,
    expected text,
    at real not null, tended text not null default '', seal text not null default '',
    unique (path, version)
) strict;

-- Calls are numbered per function, so that the oldest can go; what they come to is kept for ever, per version, so that
-- nobody adds up a million rows at start. `cpu` is null where it was not measured.
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
    seconds real not null, worst integer not null default 0, since real, worked real, longest real not null default 0, memory integer, cpu real,
    primary key (function, version)
) strict, without rowid;
create index call_failing on call_total (worst) where worst > 0;

create table reading (
    path text primary key,
    mtime_ns integer not null,
    size integer not null,
    inode text not null,  -- may need all of 64 bits, and SQLite's integers have a sign
    version text not null,
    reading text not null
, seal text not null default '') strict;

create table pin (
    agent text not null,
    function text not null,
    primary key (agent, function)
) strict, without rowid;

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
    at real not null, cpu real,
    primary key (function, n)
) strict, without rowid;

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

-- A human let a function out of quarantine.
create table release (
    seq integer primary key,
    function text not null,
    version text not null,
    at real not null
) strict;
create index release_function on release (function, seq);

-- A human's approval of what a function may reach, for exactly one content; `seal` tells it from a stranger's row.
create table "approval" (
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

-- A lane is what one search looks through: an agent's words (space '') or vectors of one space, on one shelf. `rows`
-- counts what it holds. Of words, those of `seq` above `done` and up to `upto` are not indexed yet. Of vectors, those
-- up to `done` have their signs in a table `bits_<id>` of sqlite-vec, which is made where there are many.
create table lane (
    id integer primary key autoincrement,
    agent text not null,
    shelf text not null,
    space text not null,
    rows integer not null default 0,
    done integer not null default 0, upto integer not null default 0,
    unique (agent, shelf, space)
) strict;

create table vector (
    lane integer not null references lane (id) on delete cascade,
    seq integer not null,
    vector blob not null,  -- little-endian float32
    primary key (lane, seq)
) strict;

-- Calls with all that they got through `self`, to be made again.
create table recorded (
    n integer primary key autoincrement,
    function text not null,
    outcome text not null,
    turn text not null,
    at real not null,
    data text not null
, seal text not null default '') strict;
create index recorded_function on recorded (function, n);

-- Whose file it is: the seal next to the file names this id. What was read and judged carries a seal of its own.
create table origin (
    id text not null
) strict;

-- Each word is kept as `<lane>x<stem>`: what one agent finds, and how long it takes, does not depend on the others.
create virtual table said_words using fts5(
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);

create virtual table passage_words using fts5(
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);

-- What the user is asked during a turn, answered by the id of the question: by the prompt of the process that asks, or
-- by any other of this user. `seal` and `answer_seal` tell both from a stranger's row.
create table question (
    seq integer primary key autoincrement,
    id text not null unique,
    agent text not null,
    turn text not null,
    question text not null,  -- JSON
    asked_at real not null,
    seal text not null,
    decision text,  -- JSON; none as long as it is pending
    answered_at real,
    answer_seal text
) strict;
create index question_pending on question (turn) where decision is null;

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

-- Who may read a shared block, and who may change it: names of agents, or * for all. Every block has a row with its
-- owner, the agent that made it: who owns a block does not depend on its history, which can be forgotten.
create table block_access (
    block text not null primary key references block (id) on delete cascade,
    readers text not null,  -- JSON
    writers text not null  -- JSON
, owner text not null default '') strict, without rowid;

-- Who may use the server: a token's secret is kept as a hash. `seal` tells it from a stranger's row.
create table token (
    id text primary key,
    name text not null unique,
    digest text not null,
    scopes text not null,  -- JSON: a list
    agents text not null,  -- JSON: a list; empty for all
    expires real,
    added_at real not null,
    seal text not null
) strict, without rowid;

-- The small value that a function keeps for itself, as each of its newest turns left it: the last row is the one in force.
create table state (
    n integer primary key autoincrement,
    function text not null,
    turn text not null,
    value text not null,  -- JSON
    at real not null
) strict;
create index state_function on state (function, n);

-- What was drawn when functions were masked at random, in states of earlier versions: nothing is added.
create table exposure (
    n integer primary key autoincrement,
    turn text not null,
    function text not null,
    version text not null,
    masked integer not null,
    model text not null
, kind text not null default '', is_right integer, draw text not null default '') strict;

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
