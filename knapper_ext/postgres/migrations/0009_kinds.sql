-- The kind of a turn's request: the function that it probably needed most, and the user's verdict on its results.
alter table exposure add column kind text collate "C" not null default '';
alter table exposure add column is_right integer;  -- 1: right, 0: wrong, null: unknown
