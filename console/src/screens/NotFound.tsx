import { Link, useLocation } from 'react-router';
import { Name } from '../ui/Name';

export function NotFound() {
  const { pathname } = useLocation();
  return (
    <div className="page">
      <title>Not found · Stele</title>
      <h1>There is nothing at this address</h1>
      <p className="break">No page is at <code><Name text={pathname} /></code>. It may have been mistyped, or what it showed is gone.</p>
      <p><Link to="/stores">All stores</Link></p>
    </div>
  );
}
