package dev.fieldmesh.core.agent

import okhttp3.ConnectionPool
import okhttp3.Dns
import okhttp3.OkHttpClient
import java.net.InetAddress
import javax.net.SocketFactory

/**
 * One of the phone's networks, as calls need it: what makes its sockets, and what it knows a host's name by. Who does
 * not answer over it may be tried over [otherwise].
 */
class Way(val sockets: SocketFactory, val otherwise: Way? = null, val addresses: (host: String) -> List<InetAddress>) {
    companion object {
        /** The network that the phone itself prefers at the moment. */
        val PREFERRED = Way(SocketFactory.getDefault(), addresses = Dns.SYSTEM::lookup)
    }
}

/** Calls over [way] only: no connection is taken over from another. */
internal fun OkHttpClient.over(way: Way): OkHttpClient {
    val names = object : Dns {
        override fun lookup(hostname: String) = way.addresses(hostname)
    }
    return newBuilder().socketFactory(way.sockets).dns(names).connectionPool(ConnectionPool()).build()
}

/** The clients for the way that [way] tells at the moment of a call. */
internal class Clients(private val plain: OkHttpClient, private val way: () -> Way) {
    private var last: Way? = null
    private var made: List<OkHttpClient> = emptyList()

    /** The one by which the peer answered last comes first. */
    @Synchronized
    private fun now(): List<OkHttpClient> {
        val newest = way()
        if (newest !== last) {
            made.forEach { it.connectionPool.evictAll() }
            made = generateSequence(newest) { it.otherwise }.map(plain::over).toList()
            last = newest
        }
        return made
    }

    /** For a call that has no time for a second try. */
    fun first(): OkHttpClient = now().first()

    /** Makes a [call], which may be made twice: over each way, until the peer answers. */
    suspend fun <T> each(call: suspend (OkHttpClient) -> T): T {
        var away: AgentException? = null
        for (client in now()) {
            try {
                return call(client).also { answered(client) }
            } catch (e: AgentException) {
                if (!e.isAway) {
                    answered(client)
                    throw e
                }
                away = away ?: e
            }
        }
        throw checkNotNull(away)
    }

    @Synchronized
    private fun answered(client: OkHttpClient) {
        if (client in made) made = listOf(client) + (made - client)
    }
}
