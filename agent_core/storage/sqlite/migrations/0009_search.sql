-- Words are found by FTS5 and vectors by sqlite-vec. What was searched before is derived from rows that stay: it is
-- dropped here, and each lane is indexed anew when it is searched next.
drop table gone;
drop table sheet;

-- A lane is what one search looks through: an agent's words (space '') or vectors of one space, on one shelf. `rows`
-- counts what it holds. Of words, those of `seq` above `done` and up to `upto` are not indexed yet. Of vectors, those
-- up to `done` have their signs in a table `bits_<id>` of sqlite-vec, which is made where there are many.
alter table lane add column done integer not null default 0;
alter table lane add column upto integer not null default 0;
update lane set rows = rows - gone;
alter table lane drop column gone;
update lane set upto = (select coalesce(max(seq), 0) from said as r where r.agent = lane.agent)
    where shelf = 'recall' and space = '';
update lane set upto = (select coalesce(max(seq), 0) from passage as r where r.agent = lane.agent)
    where shelf = 'archival' and space = '';

-- Each word is kept as `<lane>x<stem>`: what one agent finds, and how long it takes, does not depend on the others.
create virtual table said_words using fts5(
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
create virtual table passage_words using fts5(
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
