-- A worker lets an agent go after its turns and keeps what it has read of it. The row stays, without an owner: whoever
-- takes the agent changes `at`, by which the worker sees that what it has is out of date. Who had it last is woken for
-- its next message as long as half of its slots are free.
alter table lease alter column owner drop not null;
alter table lease add column last text collate "C";

create or replace function tell_of_events() returns trigger language plpgsql as $$
declare
    whose text;
begin
    for whose in select distinct agent from added loop
        perform pg_notify('knapper', 'work ' || coalesce(
            (select w.id from knapper.lease l join knapper.worker w on w.id = coalesce(l.owner, l.last)
                where l.agent = whose and w.beat > clock_timestamp() - interval '3 s'
                and (l.owner is not null
                    or w.slots >= 2 * (select count(*) from knapper.lease b where b.owner = w.id) and w.slots > 0)),
            knapper.roomy(''), '-'));
    end loop;
    return null;
end $$;

drop trigger lease_told on lease;
create trigger lease_told after delete on lease for each row when (old.owner is not null)
    execute function tell_of_lease();
create trigger lease_lent after update of owner on lease for each row when (old.owner is not null and new.owner is null)
    execute function tell_of_lease();
