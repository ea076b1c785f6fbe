import type { AgentMemory } from '../api/types';
import { LEARNING } from '../lib/states';
import { Time } from './Time';

export function LearningState({ memory }: { memory: AgentMemory }) {
  const tone = memory.state === 'delayed' ? 'badge warn' : memory.state === 'waiting' ? 'badge' : 'badge good';
  return (
    <>
      <span className={tone}>{LEARNING[memory.state]}</span>
      {memory.state === 'delayed' && memory.next_retry_at !== undefined && <span className="small soft"> next try <Time at={memory.next_retry_at} /></span>}
      {memory.learning_blocked === 'no_model' && <div className="small soft">No model is configured, so nothing is learned yet.</div>}
    </>
  );
}
