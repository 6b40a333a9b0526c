package dev.fieldmesh.core.agent

import okhttp3.ConnectionPool
import okhttp3.Dns
import okhttp3.OkHttpClient
import java.net.InetAddress
import javax.net.SocketFactory

/** One of the phone's networks, as calls need it: what makes its sockets, and what it knows a host's name by. */
class Way(val sockets: SocketFactory, val addresses: (host: String) -> List<InetAddress>) {
    companion object {
        /** The network that the phone itself prefers at the moment. */
        val PREFERRED = Way(SocketFactory.getDefault(), Dns.SYSTEM::lookup)
    }
}

/** Calls over [way] only: no connection is taken over from another. */
internal fun OkHttpClient.over(way: Way): OkHttpClient {
    val names = object : Dns {
        override fun lookup(hostname: String) = way.addresses(hostname)
    }
    return newBuilder().socketFactory(way.sockets).dns(names).connectionPool(ConnectionPool()).build()
}

/** The client for the way that [way] tells at the moment of a call. */
internal class Clients(private val plain: OkHttpClient, private val way: () -> Way) {
    private var last: Pair<Way, OkHttpClient>? = null

    @Synchronized
    fun now(): OkHttpClient {
        val newest = way()
        last?.let { (old, client) ->
            if (old === newest) return client
            client.connectionPool.evictAll()
        }
        return plain.over(newest).also { last = newest to it }
    }
}
