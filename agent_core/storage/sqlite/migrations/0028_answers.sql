-- What people answered in turns, for the log of approvals.
create index entry_answered on entry (seq) where kind = 'grant_answered';
