-- A message wakes one process: who has its agent, or else a worker with room, the likelier the more of it. The others
-- that run turns need not look. Processes without slots (a prompt) look each time, and who shows the turns of others (a
-- server) hears of everything. It stays a hint: each worker looks by itself once a second. Who was not heard for 3 seconds counts as gone, as in `store.py`.
create function roomy(besides text) returns text language sql volatile as $$
    select w.id from knapper.worker w
        cross join lateral (select count(*) as busy from knapper.lease l where l.owner = w.id) as b
        where w.slots > b.busy and w.id <> besides and w.beat > clock_timestamp() - interval '3 s'
        order by -ln(1 - random()) / (w.slots - b.busy) limit 1
$$;

create function tell_of_events() returns trigger language plpgsql as $$
declare
    whose text;
begin
    for whose in select distinct agent from added loop
        perform pg_notify('knapper', 'work ' || coalesce(
            (select w.id from knapper.lease l join knapper.worker w on w.id = l.owner
                where l.agent = whose and w.beat > clock_timestamp() - interval '3 s'),
            knapper.roomy(''), '-'));
    end loop;
    return null;
end $$;

create function tell_of_lease() returns trigger language plpgsql as $$
declare
    next text;
begin
    if exists (select 1 from knapper.event where agent = old.agent and turn is null)
        or exists (select 1 from knapper.turn where agent = old.agent and state = 'open') then
        next := knapper.roomy(old.owner);  -- who let it go looks without being told
    end if;
    perform pg_notify('knapper', 'work ' || coalesce(next, '-'));
    return null;
end $$;

drop trigger event_told on event;
drop trigger lease_told on lease;
create trigger event_told after insert on event referencing new table as added
    for each statement execute function tell_of_events();
create trigger lease_told after delete on lease for each row execute function tell_of_lease();
