-- The cap of memories of each of a workspace's stores; NULL where the server's counts.
ALTER TABLE workspaces ADD COLUMN max_memories_per_store INTEGER;

-- The stores of one agent, in the order of their list.
CREATE INDEX stores_agent ON stores (workspace, agent, created_at, id) WHERE agent IS NOT NULL AND deleted_at IS NULL;
