import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** Puts a `.gz` beside each file that it makes smaller: the binary embeds both and serves what the browser takes. */
function gzipped(): Plugin {
  return {
    name: 'gzipped',
    apply: 'build',
    // From the disk: bundles are still changed after the last hook that sees them in memory.
    writeBundle({ dir = 'dist' }) {
      for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
        const file = join(dir, name);
        if (!statSync(file).isFile()) continue;
        const plain = readFileSync(file);
        const packed = gzipSync(plain, { level: 9 });
        if (packed.length < plain.length * 0.9) writeFileSync(`${file}.gz`, packed);
      }
    },
  };
}

/** The server that `npm run dev` shows the console of. */
const server = process.env.STELE_URL ?? 'http://127.0.0.1:7878';
const proxied = ['/v1', '/managed-agents', '/stele', '/metrics', '/openapi.json', '/docs', '/readyz', '/healthz'];

export default defineConfig({
  plugins: [react(), gzipped()],
  build: {
    target: 'es2022',
    // Without data: URLs and inline module preloads there is nothing that the content security policy would refuse.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
    reportCompressedSize: false,
  },
  server: { proxy: Object.fromEntries(proxied.map((path) => [path, { target: server, changeOrigin: false }])) },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
});
