-- Seconds of processor time, as the kernel told them; null where it was not measured.
alter table call add column cpu real;
alter table call_total add column cpu real;
