-- Whose a block is that came with an agent's file: its history has the names that it was written under. Empty: it belongs
-- to the agent that made it.
alter table block_access add column owner text not null default '';
