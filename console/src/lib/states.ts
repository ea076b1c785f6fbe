/** What learning is doing, in the words of the product. spec/recursion.md 8.4. */
import type { AgentMemory } from '../api/types';

export const LEARNING: Record<AgentMemory['state'], string> = {
  waiting: 'Waiting for sessions',
  idle: 'Learning automatically',
  updating: 'Updating memories',
  delayed: 'Updates delayed',
};
