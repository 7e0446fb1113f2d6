-- The change in the record of tending that goes with a write of a file, as sealed JSON; '' if there is none.
alter table intent add column tended text collate "C" not null default '';
alter table intent add column seal text collate "C" not null default '';
