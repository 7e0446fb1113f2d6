-- The change in the record of tending that goes with a write of a file, as sealed JSON; '' if there is none.
alter table intent add column tended text not null default '';
alter table intent add column seal text not null default '';
