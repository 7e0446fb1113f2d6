-- Code that an agent wrote here: the hash of a top-level statement, without its docstrings. `seal` tells it from a
-- stranger's row.
create table made (
    agent text collate "C" not null,
    code text collate "C" not null,
    seal text not null,
    primary key (agent, code)
);
create index made_code on made (code);
