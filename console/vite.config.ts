import { gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** Puts a `.gz` beside each file that it makes smaller: the binary embeds both and serves what the browser takes. */
function gzipped(): Plugin {
  return {
    name: 'gzipped',
    apply: 'build',
    enforce: 'post',
    generateBundle(_options, bundle) {
      for (const [name, part] of Object.entries(bundle)) {
        const source = part.type === 'chunk' ? part.code : part.source;
        const plain = typeof source === 'string' ? Buffer.from(source) : Buffer.from(source);
        const packed = gzipSync(plain, { level: 9 });
        if (packed.length < plain.length * 0.9) {
          this.emitFile({ type: 'asset', fileName: `${name}.gz`, source: packed });
        }
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
    chunkSizeWarningLimit: 300,
    reportCompressedSize: false,
  },
  server: { proxy: Object.fromEntries(proxied.map((path) => [path, { target: server, changeOrigin: false }])) },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
});
