-- An agent has many conversations. Each is a line of turns: its key is the agent's name for the main one, AGENT/ID for
-- another. So the agent follows from the line, and no row can say otherwise. `origin` is the window through which an
-- event came, and whose it is, as JSON; '' where nobody said so.
alter table event rename column agent to line;
alter table event add column agent text collate "C" generated always as (split_part(line, '/', 1)) stored;
alter table event add column origin text not null default '';
create index event_agent on event (agent, seq);

alter table turn rename column agent to line;
alter table turn add column agent text collate "C" generated always as (split_part(line, '/', 1)) stored;
drop index turn_agent;
create index turn_line on turn (line, seq);
create index turn_agent on turn (agent, line, seq);

-- The main conversation has a row only if it was renamed. A branch has the turns of its `parent` up to the entry `upto`,
-- without those that were `hidden` when it began (numbers of turns, of all conversations that it stands on, as JSON).
create table conversation (
    line text collate "C" primary key,
    agent text collate "C" generated always as (split_part(line, '/', 1)) stored,
    name text not null default '',
    renamed boolean not null default false,
    began double precision not null,
    origin text not null default '',
    parent text collate "C" not null default '',
    upto bigint not null default 0,
    hidden text not null default '[]',
    deleted double precision
);
create index conversation_agent on conversation (agent, began);

-- `agent` names the lane in which a message is found: the agent's, or its conversation's own if that is private or deleted.
alter table said add column line text collate "C" not null default '';
update said set line = agent;
drop index said_agent;
create index said_agent on said (agent, seq);
create index said_line on said (line, n);

-- Conversations of an agent run beside each other, so each has an owner of its own.
alter table lease rename column agent to line;

create or replace function tell_of_events() returns trigger language plpgsql as $$
declare
    whose text;
begin
    for whose in select distinct line from added loop
        perform pg_notify('knapper', 'work ' || coalesce(
            (select w.id from knapper.lease l join knapper.worker w on w.id = coalesce(l.owner, l.last)
                where l.line = whose and w.beat > clock_timestamp() - interval '3 s'
                and (l.owner is not null
                    or w.slots >= 2 * (select count(*) from knapper.lease b where b.owner = w.id) and w.slots > 0)),
            knapper.roomy(''), '-'));
    end loop;
    return null;
end $$;

create or replace function tell_of_lease() returns trigger language plpgsql as $$
declare
    next text;
begin
    if exists (select 1 from knapper.event where line = old.line and turn is null)
        or exists (select 1 from knapper.turn where line = old.line and state = 'open') then
        next := knapper.roomy(old.owner);  -- who let it go looks without being told
    end if;
    perform pg_notify('knapper', 'work ' || coalesce(next, '-'));
    return null;
end $$;
