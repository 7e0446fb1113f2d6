-- The functions of the text that were kept out with this version, separated by blanks: another file has a function of that
-- name, or it is built in. They have no version by this line.
alter table change add column kept_out text not null default '';
create index change_kept_out on change (module) where kept_out <> '';
