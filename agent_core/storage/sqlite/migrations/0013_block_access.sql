-- Who may read a shared block, and who may change it: names of agents, or * for all. A block without a row is open to
-- every agent that attaches it. The agent that made a block may always do both.
create table block_access (
    block text not null primary key references block (id) on delete cascade,
    readers text not null,  -- JSON
    writers text not null  -- JSON
) strict, without rowid;
