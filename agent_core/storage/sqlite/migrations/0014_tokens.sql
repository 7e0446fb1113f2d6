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
