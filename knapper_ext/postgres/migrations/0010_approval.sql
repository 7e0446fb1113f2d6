-- A human's approval of what a function may reach, for exactly one content; `seal` tells it from a stranger's row.
alter table yes rename to approval;
