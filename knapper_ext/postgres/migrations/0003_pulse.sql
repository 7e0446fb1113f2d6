-- What each process says of itself: which version it is, and by how much the database's clock is ahead of its own.
alter table worker add column version text not null default '';
alter table worker add column skew double precision not null default 0;
