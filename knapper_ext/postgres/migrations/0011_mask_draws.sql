-- The turn in which the masked functions of a conversation were drawn; '' for older rows.
alter table exposure add column draw text collate "C" not null default '';
