/**
 * Shapes of the server. Those of Stele's own routes and of the Anthropic dialect are generated from `docs/openapi.json`
 * (`npm run types`); Recursion's dialect has no document, so what the console reads of it stands here.
 */
import type { components } from './schema';

type Schemas = components['schemas'];

export type Whoami = Schemas['Whoami'];
export type User = Schemas['User'];
export type ApiKey = Schemas['ApiKey'];
export type PermissionTable = Schemas['PermissionTable'];
export type Backup = Schemas['Backup'];

export interface Store {
  memory_store_id: string;
  name: string;
  slug: string;
  description?: string;
  agent_id?: string;
  origin: 'curated' | 'reflection';
  status: 'active' | 'archived';
  memory_count: number;
  total_bytes: number;
  revision: number;
  created_at: string;
  updated_at: string;
  archived_at?: string;
}

export interface Memory {
  memory_id: string;
  memory_store_id: string;
  path: string;
  summary: string;
  content: string;
  content_sha256: string;
  byte_size: number;
  head_version_id: string;
  created_at: string;
  updated_at: string;
}

export type Entry =
  | { type: 'memory'; path: string; summary: string; byte_size: number }
  | { type: 'memory_prefix'; path: string; count: number };

export interface Version {
  memory_version_id: string;
  memory_id: string;
  memory_store_id: string;
  operation: 'create' | 'update' | 'rename' | 'delete' | 'retire' | 'merge';
  author_kind: 'session' | 'api' | 'reflection' | 'admin';
  author_principal?: string;
  author_session_id?: string;
  rationale?: string;
  evidence_session_ids?: string[];
  path: string;
  summary?: string;
  content?: string;
  content_sha256?: string;
  byte_size?: number;
  created_at: string;
  redacted_at?: string;
  redacted_by?: string;
}

export interface VersionPage {
  memory_versions: Version[];
  next_cursor?: string;
}

/** One change of the feed, in the spelling of the Anthropic dialect. */
export interface Change {
  sequence: number;
  memory_id: string | null;
  memory_version_id: string | null;
  operation: 'created' | 'modified' | 'deleted' | 'redacted' | 'store_archived' | 'store_deleted';
  path: string | null;
  previous_path: string | null;
  content_size_bytes: number | null;
  created_by: Actor;
  created_at: string;
}

export type Actor =
  | { type: 'api_actor'; api_key_id: string }
  | { type: 'session_actor'; session_id: string }
  | { type: 'user_actor'; user_id: string }
  | { type: 'service_account_actor'; service_account_id: string };

export interface Hit {
  memory_id: string;
  path: string;
  summary: string;
  snippet: string;
  highlights: { start: number; end: number }[];
  score: number;
  updated_at: string;
}

export interface SearchPage {
  data: Hit[];
  total_matches: number;
  next_page: string | null;
}

/** What an agent has learned, in sum. spec/recursion.md 4.5. */
export interface AgentMemory {
  agent_id: string;
  agent_name: string;
  memory_store_id?: string;
  memory_count: number;
  total_bytes: number;
  revision: number;
  state: 'waiting' | 'idle' | 'updating' | 'delayed';
  effective_model: string;
  memory_model_ref?: string;
  pending_session_count: number;
  failed_session_count: number;
  learning_blocked?: string;
  waiting_session_count?: number;
  last_updated_at?: string;
  last_checked_at?: string;
  next_retry_at?: string;
}

export interface Agent {
  agent_id: string;
  name: string;
  model: string;
  system: string;
  description?: string;
  latest_agent_version_id: string;
  created_at: string;
  updated_at: string;
}

export interface AttachedStore {
  memory_store_id: string;
  name: string;
  description: string;
  slug: string;
  mount_path: string;
  access: 'read_only' | 'read_write';
  instructions?: string;
  learned: boolean;
}

export interface Session {
  session_id: string;
  status: 'active' | 'awaiting_human' | 'completed' | 'failed' | 'cancelled';
  execution_state: string;
  agent_id: string;
  agent_version_id: string;
  effective_model: string;
  environment_id?: string;
  metadata?: Record<string, unknown>;
  last_activity_at: string;
  created_at: string;
  updated_at: string;
  stop_reason?: string;
  failure?: { at: string; code: string; message: string };
  config: { memory_stores?: AttachedStore[]; skipped_memory_stores?: unknown };
  agent_snapshot?: { name?: string };
}

export interface SessionEvent {
  event_id: string;
  event_type: 'message' | 'tool_invocation' | 'tool_result' | 'session_status';
  actor: string;
  role?: 'user' | 'assistant' | 'system' | 'tool';
  content: { blocks: Record<string, unknown>[] };
  tool_name?: string;
  tool_use_id?: string;
  created_at: string;
}

export interface AutomationRow {
  automationId: string;
  displayName: string;
  agentId: string;
  environmentId: string;
  status: 'active' | 'paused';
  revision: number;
  createdAt: string;
  updatedAt: string;
  triggerCount: number;
  enabledTriggerCount: number;
  latestRun: AutomationRun | null;
}

export interface Automation extends Omit<AutomationRow, 'triggerCount' | 'enabledTriggerCount' | 'latestRun'> {
  initialPrompt: { type: string; text?: string };
  runDefaults: { memoryStores?: { memoryStoreId: string; access: string; instructions?: string }[] };
  triggers: { type: string; triggerId: string; enabled: boolean; schedule?: { cron: string; timezone: string } }[];
}

export interface AutomationRun {
  automationRunId: string;
  automationId: string;
  status: 'created' | 'failed';
  triggerType: string;
  createdAt: string;
  sessionId?: string;
  error?: { code: string; message: string };
  occurrenceAt?: string;
}
