-- An agent has many conversations. Each is a line of turns: its key is the agent's name for the main one, AGENT/ID for
-- another. So the agent follows from the line, and no row can say otherwise. `origin` is the window through which an
-- event came, and whose it is, as JSON; '' where nobody said so.
alter table event rename column agent to line;
alter table event add column agent text generated always as (
    iif(instr(line, '/') > 0, substr(line, 1, instr(line, '/') - 1), line)
) virtual;
alter table event add column origin text not null default '';
create index event_agent on event (agent, seq);

alter table turn rename column agent to line;
alter table turn add column agent text generated always as (
    iif(instr(line, '/') > 0, substr(line, 1, instr(line, '/') - 1), line)
) virtual;
drop index turn_agent;
create index turn_line on turn (line, seq);
create index turn_agent on turn (agent, line, seq);

-- The main conversation has a row only if it was renamed. A branch has the turns of its `parent` up to the entry `upto`,
-- without those that were `hidden` when it began (numbers of turns, of all conversations that it stands on, as JSON).
create table conversation (
    line text primary key,
    agent text generated always as (
        iif(instr(line, '/') > 0, substr(line, 1, instr(line, '/') - 1), line)
    ) virtual,
    name text not null default '',
    renamed integer not null default 0,
    began real not null,
    origin text not null default '',
    parent text not null default '',
    upto integer not null default 0,
    hidden text not null default '[]',
    deleted real
) strict;
create index conversation_agent on conversation (agent, began);

-- `agent` names the lane in which a message is found: the agent's, or its conversation's own if that is private or deleted.
alter table said add column line text not null default '';
update said set line = agent;
drop index said_agent;
create index said_agent on said (agent, seq);
create index said_line on said (line, n);
