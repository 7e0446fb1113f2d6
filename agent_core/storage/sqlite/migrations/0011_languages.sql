-- Words in German, French and Spanish are indexed by the stems of their language as well: each lane is indexed anew
-- when it is searched next.
insert into said_words (said_words) values ('delete-all');
insert into passage_words (passage_words) values ('delete-all');
update lane set done = 0, upto = (select coalesce(max(seq), 0) from said as r where r.agent = lane.agent)
    where shelf = 'recall' and space = '';
update lane set done = 0, upto = (select coalesce(max(seq), 0) from passage as r where r.agent = lane.agent)
    where shelf = 'archival' and space = '';
