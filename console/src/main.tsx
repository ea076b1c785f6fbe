import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { BrowserRouter } from 'react-router';
import { ApiError } from './api/client';
import { App } from './App';
import './styles.css';

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // What the server refuses it refuses again; what it could not be asked is asked once more.
      retry: (failures, error) => failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
      staleTime: 5_000,
      refetchOnWindowFocus: true,
    },
  },
});

const root = document.getElementById('root');
if (root === null) throw new Error('index.html has an element with the id root');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <BrowserRouter>
        <App />
      </BrowserRouter>
    </QueryClientProvider>
  </StrictMode>,
);
