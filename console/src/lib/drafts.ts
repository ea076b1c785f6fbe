/**
 * Texts being written, kept in this tab until they are saved or thrown away: a reload, a wrong click and a session that
 * ends lose nothing. `sessionStorage` ends with the tab, and signing out empties it.
 */

const PREFIX = 'stele.draft.';

export interface Draft {
  path: string;
  summary: string;
  content: string;
  /** The hash of the text that the draft was begun on; empty for a new memory. */
  base: string;
  /** That text, for a merge. */
  baseContent: string;
}

export function readDraft(key: string): Draft | undefined {
  try {
    const kept = sessionStorage.getItem(PREFIX + key);
    return kept === null ? undefined : (JSON.parse(kept) as Draft);
  } catch {
    return undefined;
  }
}

export function keepDraft(key: string, draft: Draft): void {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(draft));
  } catch {
    // The tab's storage is full or switched off: the text is still in the page.
  }
}

export function forgetDraft(key: string): void {
  sessionStorage.removeItem(PREFIX + key);
}

export function forgetDrafts(): void {
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  }
}
