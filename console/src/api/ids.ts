/** One id, two spellings: a UUID, and Anthropic's prefix with `01` and the base58 of the same 16 bytes. DESIGN 4. */

const DIGITS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** `prefixed('memstore', uuid)` is `memstore_01...`. */
export function prefixed(prefix: string, uuid: string): string {
  let number = BigInt(`0x${uuid.replaceAll('-', '')}`);
  let spelled = '';
  for (let i = 0; i < 22; i++) {
    spelled = (DIGITS[Number(number % 58n)] ?? '1') + spelled;
    number /= 58n;
  }
  return `${prefix}_01${spelled}`;
}

/** The UUID of an id with a prefix. What is none stays as it is: the server says what is wrong with it. */
export function uuidOf(id: string): string {
  const digits = /^[a-z]+_01([1-9A-HJ-NP-Za-km-z]{22})$/.exec(id)?.[1];
  if (digits === undefined) return id;
  let number = 0n;
  for (const digit of digits) number = number * 58n + BigInt(DIGITS.indexOf(digit));
  const hex = number.toString(16).padStart(32, '0');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
