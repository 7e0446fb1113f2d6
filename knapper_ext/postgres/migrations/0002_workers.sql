-- The processes at work, each with the backend of its pulse, and the agents that each has: see `store.py`.
create table worker (
    id text collate "C" primary key,
    name text not null,
    slots bigint not null default 0,
    backend bigint not null,
    began timestamptz not null default clock_timestamp(),
    beat timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

create table lease (
    agent text collate "C" primary key,
    owner text collate "C" not null references worker (id) on delete cascade,
    at timestamptz not null default clock_timestamp()
);
create index lease_owner on lease (owner);

-- Whoever writes what others wait for tells them when it is committed. It is a hint: who misses it looks again by itself.
create function tell() returns trigger language plpgsql as $$
begin
    perform pg_notify('knapper', tg_argv[0]);
    return null;
end $$;
create trigger event_told after insert on event for each statement execute function tell('work');
create trigger pause_told after delete on paused for each row execute function tell('work');
create trigger lease_told after delete on lease for each row execute function tell('work');
create trigger worker_told after delete on worker for each row execute function tell('work');
create trigger function_told after insert or update or delete on manifest for each statement
    execute function tell('functions');
