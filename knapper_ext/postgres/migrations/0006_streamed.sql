-- What was shown so far of a reply that is still coming: it becomes the interrupted reply if the program is killed.
alter table turn add column streamed text not null default '';
