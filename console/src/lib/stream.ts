/** Server-sent events over `fetch`: an EventSource could not send the header that the cookie needs. */
import { ApiError, send } from '../api/client';

export interface Message {
  event: string;
  id: string;
  data: string;
}

/** Cuts text as it arrives into messages; the rest waits for more. */
export function cut(buffer: string): { messages: Message[]; rest: string } {
  const parts = buffer.split(/\r?\n\r?\n/);
  const rest = parts.pop() ?? '';
  const messages = parts.map((part) => {
    const message: Message = { event: 'message', id: '', data: '' };
    const data: string[] = [];
    for (const line of part.split(/\r?\n/)) {
      const [, field, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
      if (field === 'event') message.event = value ?? '';
      if (field === 'id') message.id = value ?? '';
      if (field === 'data') data.push(value ?? '');
    }
    message.data = data.join('\n');
    return message;
  });
  return { messages, rest };
}

export interface Follower {
  /** The address, given the id of the last event seen. */
  address: (last: string) => string;
  onMessage: (message: Message) => void;
  onState: (live: boolean) => void;
  /** What cannot be told without a gap any more: begin anew. */
  onExpired: () => void;
}

const LONGEST_PAUSE = 15_000;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

/** Follows a stream and connects again until the signal ends it. */
export async function follow(follower: Follower, signal: AbortSignal): Promise<void> {
  let last = '';
  let wait = 500;
  const ended = () => signal.aborted;
  while (!ended()) {
    try {
      const response = await send(follower.address(last), { headers: { accept: 'text/event-stream' }, signal });
      follower.onState(true);
      wait = 500;
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = '';
      for (;;) {
        const read = await reader?.read();
        if (read?.value === undefined) break;
        const { messages, rest } = cut(buffer + read.value);
        buffer = rest;
        for (const message of messages) {
          if (message.id !== '') last = message.id;
          follower.onMessage(message);
        }
      }
    } catch (error) {
      if (ended()) return;
      follower.onState(false);
      if (error instanceof ApiError && error.status === 410) {
        last = '';
        follower.onExpired();
      } else if (error instanceof ApiError && [401, 403, 404].includes(error.status)) {
        return;
      }
    }
    follower.onState(false);
    await pause(wait, signal);
    wait = Math.min(wait * 2, LONGEST_PAUSE);
  }
}
