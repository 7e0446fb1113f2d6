-- Whose file it is: the seal next to the file names this id. What was read and judged carries a seal of its own.
create table origin (
    id text not null
) strict;

alter table reading add column seal text not null default '';
alter table verdict add column seal text not null default '';
alter table pending add column seal text not null default '';
alter table recorded add column seal text not null default '';
