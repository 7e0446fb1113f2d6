-- What a door keeps of a conversation that it began, as JSON: its instructions, the requests that it knows when they come
-- again, and the calls that its program has to answer.
alter table conversation add column door text not null default '{}';
