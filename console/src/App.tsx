import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useState } from 'react';
import { Link, NavLink, Route, Routes, useLocation } from 'react-router';
import { onSignedOut } from './api/client';
import { SessionProvider, signOut, useMay, useWhoami, useWhoamiQuery } from './session';
import { NotFound } from './screens/NotFound';
import { SignIn, SignInForm } from './screens/SignIn';
import { Stores } from './screens/Stores';
import { Dialog } from './ui/Dialog';
import { Failure, Loading } from './ui/states';
import { Name } from './ui/Name';

const AgentMemory = lazy(() => import('./screens/AgentMemory'));
const Agents = lazy(() => import('./screens/Agents'));
const Automation = lazy(() => import('./screens/Automation'));
const Automations = lazy(() => import('./screens/Automations'));
const Health = lazy(() => import('./screens/Health'));
const Keys = lazy(() => import('./screens/Keys'));
const Leak = lazy(() => import('./screens/Leak'));
const MemoryEditor = lazy(() => import('./screens/MemoryEditor'));
const Session = lazy(() => import('./screens/Session'));
const Sessions = lazy(() => import('./screens/Sessions'));
const Start = lazy(() => import('./screens/Start'));
const Store = lazy(() => import('./screens/Store'));
const StoreHistory = lazy(() => import('./screens/StoreHistory'));
const StoreSettings = lazy(() => import('./screens/StoreSettings'));
const Usage = lazy(() => import('./screens/Usage'));

export function App() {
  const whoami = useWhoamiQuery();
  if (whoami.isPending) return <Loading what="the console" />;
  if (whoami.isError) {
    return whoami.error.status === 401 ? <SignIn /> : <div className="centre"><Failure error={whoami.error} retry={() => void whoami.refetch()} /></div>;
  }
  return (
    <SessionProvider whoami={whoami.data}>
      <Frame />
      <SignedOut />
    </SessionProvider>
  );
}

function Frame() {
  const location = useLocation();
  useEffect(() => {
    document.getElementById('main')?.scrollTo(0, 0);
  }, [location.pathname]);
  return (
    <div className="frame">
      <a className="skip" href="#main">Skip to the page</a>
      <Side />
      <main className="main" id="main" tabIndex={-1}>
        <Suspense fallback={<div className="page"><Loading what="the page" /></div>}>
          <Routes>
            <Route path="/" element={<Stores />} />
            <Route path="/start" element={<Start />} />
            <Route path="/memory" element={<Agents />} />
            <Route path="/memory/:agentId" element={<AgentMemory />} />
            <Route path="/stores" element={<Stores />} />
            <Route path="/stores/:storeId" element={<Store />} />
            <Route path="/stores/:storeId/edit" element={<MemoryEditor />} />
            <Route path="/stores/:storeId/history" element={<StoreHistory />} />
            <Route path="/stores/:storeId/leak" element={<Leak />} />
            <Route path="/stores/:storeId/settings" element={<StoreSettings />} />
            <Route path="/sessions" element={<Sessions />} />
            <Route path="/sessions/:sessionId" element={<Session />} />
            <Route path="/automations" element={<Automations />} />
            <Route path="/automations/:automationId" element={<Automation />} />
            <Route path="/keys" element={<Keys />} />
            <Route path="/usage" element={<Usage />} />
            <Route path="/health" element={<Health />} />
            <Route path="*" element={<NotFound />} />
          </Routes>
        </Suspense>
      </main>
    </div>
  );
}

function Side() {
  const may = useMay();
  const whoami = useWhoami();
  const queries = useQueryClient();
  const location = useLocation();
  const [open, setOpen] = useState(false);
  return (
    <div className="side">
      <Link to="/stores" className="brand">
        <img src="/favicon.svg" alt="" width="22" height="22" />
        Stele
      </Link>
      <button className="menu-toggle" aria-expanded={open} aria-controls="drawer" onClick={() => setOpen(!open)}>
        Menu
      </button>
      <div id="drawer" className={open ? 'drawer open' : 'drawer'}>
        <nav aria-label="Main" onClick={() => setOpen(false)}>
          {may('agent', 'read') && <NavLink to="/memory">Memory</NavLink>}
          {may('store', 'read') && <NavLink to="/stores" className={({ isActive }) => (isActive || location.pathname === '/' ? 'active' : '')}>Stores</NavLink>}
          {may('session', 'read') && <NavLink to="/sessions">Sessions</NavLink>}
          {may('automation', 'read') && <NavLink to="/automations">Automations</NavLink>}
          {may('api_key', 'read') && <NavLink to="/keys">Keys</NavLink>}
          <NavLink to="/usage">Usage</NavLink>
          <NavLink to="/health">Health</NavLink>
          <NavLink to="/start">Connect</NavLink>
        </nav>
        <div className="who small">
          <span className="break"><Name text={whoami.user?.name ?? whoami.name} /></span>
          <span className="soft break">{whoami.role ?? whoami.permissions.join(', ')} in <Name text={whoami.workspace_name} /></span>
          <span><button className="plain" onClick={() => void signOut(queries)}>Sign out</button></span>
        </div>
      </div>
    </div>
  );
}

/** Over whatever is open, so that nothing typed is lost when the session ends in the middle of it. */
function SignedOut() {
  const queries = useQueryClient();
  const [over, setOver] = useState(false);
  useEffect(() => onSignedOut(() => setOver(true)), []);
  if (!over) return null;
  return (
    <Dialog title="You have been signed out" onClose={() => setOver(false)}>
      <p>The session has ended, or its key was revoked. What you have typed is still here: sign in again to go on.</p>
      <SignInForm
        onSignedIn={() => {
          setOver(false);
          void queries.invalidateQueries();
        }}
      />
    </Dialog>
  );
}
