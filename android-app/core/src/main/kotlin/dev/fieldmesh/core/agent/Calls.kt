package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.WireError
import dev.fieldmesh.core.wire.WireJson
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.withContext
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.decodeFromStream
import kotlinx.serialization.serializer
import okhttp3.Call
import okhttp3.Callback
import okhttp3.ConnectionSpec
import okhttp3.HttpUrl
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.RequestBody
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okhttp3.TlsVersion
import okio.Buffer
import okio.BufferedSource
import okio.ForwardingSource
import okio.Source
import okio.buffer
import java.io.IOException
import java.time.Duration
import javax.net.ssl.SSLException
import javax.net.ssl.X509TrustManager
import kotlin.coroutines.resumeWithException

internal val JSON = "application/json".toMediaType()

/** Why a call did not succeed. The words that a person reads are the screens' affair. */
sealed class AgentException(message: String, cause: Throwable? = null) : IOException(message, cause) {
    /** Whether nobody answered who has the peer's key. */
    val isAway: Boolean get() = this is Unreachable || this is WrongNode

    /** Nothing answers there, or the answer did not come whole. */
    class Unreachable(cause: Throwable) : AgentException("reach the node: ${cause.message}", cause)

    /** Somebody else answers: the node's key has changed, or it is another node. */
    class WrongNode(cause: Throwable) : AgentException("the node is not the paired one", cause)

    /** The node does not know, or no longer knows, this app's key. */
    class NotPaired(cause: Throwable?) : AgentException("the node does not know this app's key", cause)

    /** The node understood and said no. */
    class Refused(val error: WireError) : AgentException(error.message)

    /** The answer is not what the schema says. */
    class BadAnswer(cause: Throwable) : AgentException("read the node's answer: ${cause.message}", cause)

    /** What came could not be kept on this phone. */
    class Unstored(cause: IOException) : AgentException("keep a file: ${cause.message}", cause) {
        val isFull: Boolean get() = message.orEmpty().let { "ENOSPC" in it || "No space left" in it }
    }

    /** This phone's own key cannot be read. */
    class NoKey(cause: Throwable) : AgentException(cause.message ?: cause.javaClass.simpleName, cause)

    /** What was asked for a [run], its start or that it goes on, is too old to be sent without asking. */
    class TooOld(val run: String, val isStart: Boolean) : AgentException("run $run was asked for too long ago")
}

/** Calls to one node or controller, each over the way of its moment. Every call can be cancelled. */
internal class Calls(
    peer: Pairing,
    identity: Identity,
    private val io: CoroutineDispatcher,
    way: () -> Way,
    timeout: Duration,
) {
    private val base = HttpUrl.Builder().scheme("https").host(peer.host).port(peer.port).build()
    private val clients = Clients(httpClient(identity, PinnedTrust(peer.pin), timeout), way)

    fun get(path: String, query: Map<String, String> = emptyMap()): Request {
        val url = base.newBuilder().addPathSegments(path)
        query.forEach { (name, value) -> url.addQueryParameter(name, value) }
        return Request.Builder().url(url.build()).build()
    }

    fun post(path: String): Request = post(path, ByteArray(0).toRequestBody())

    inline fun <reified T> post(path: String, body: T): Request =
        post(path, WireJson.encodeToString(serializer<T>(), body).toByteArray().toRequestBody(JSON))

    inline fun <reified T> put(path: String, body: T): Request =
        post(path, body).run { newBuilder().put(checkNotNull(this.body)).build() }

    fun post(path: String, body: RequestBody): Request =
        Request.Builder().url(base.newBuilder().addPathSegments(path).build()).post(body).build()

    suspend inline fun <reified T> call(request: Request, longerMs: Long = 0): T {
        val serializer: KSerializer<T> = serializer()
        return exchange(request, longerMs) { it.read(serializer) }
    }

    /** A wait of [longerMs] comes on top of the usual time. */
    suspend fun <T> exchange(request: Request, longerMs: Long, read: (Response) -> T): T = withContext(io) {
        clients.each { http ->
            val client = if (longerMs == 0L) http else http.longer(longerMs)
            client.exchange(request, read)
        }
    }

    /** A call whose answer may take as long as it goes on: [longerMs] and the usual time are of its silence alone. */
    suspend fun <T> stream(request: Request, longerMs: Long, read: (Response) -> T): T = withContext(io) {
        clients.each {
            it.longer(longerMs).newBuilder().callTimeout(Duration.ZERO).build().exchange(request, read)
        }
    }

    /** A call that is given up after [limit]. */
    suspend fun <T> hurried(request: Request, limit: Duration, read: (Response) -> T): T = withContext(io) {
        clients.first().newBuilder().callTimeout(limit).build().exchange(request, read)
    }
}

private fun OkHttpClient.longer(ms: Long): OkHttpClient {
    val timeout = Duration.ofMillis(readTimeoutMillis + ms)
    return newBuilder().readTimeout(timeout).callTimeout(timeout).build()
}

/** Reads an answer piece by piece: a phone may have no room for all of its text beside what it tells. */
@OptIn(ExperimentalSerializationApi::class)
internal fun <T> Response.read(serializer: KSerializer<T>): T =
    WireJson.decodeFromStream(serializer, bounded().inputStream())

/** What is answered, of which no more than [MOST_MIB] is read. */
internal fun Response.bounded(): BufferedSource = Bounded(checkNotNull(body).source()).buffer()

private class Bounded(all: Source) : ForwardingSource(all) {
    private var left = MOST_MIB * (1L shl 20)

    override fun read(sink: Buffer, byteCount: Long): Long {
        val count = super.read(sink, byteCount)
        left -= count.coerceAtLeast(0)
        if (left < 0) throw AgentException.BadAnswer(IOException("it has more than $MOST_MIB MiB"))
        return count
    }
}

/** What a node takes of a plan, and so what the largest schedule has at most. */
private const val MOST_MIB = 24

/** Sends a request and has its answer read, on a thread of the client. What goes wrong is an [AgentException]. */
internal suspend fun <T> OkHttpClient.exchange(request: Request, read: (Response) -> T): T = try {
    newCall(request).await { response ->
        if (response.code != 200) throw refusal(response)
        read(response)
    }
} catch (e: AgentException) {
    throw e
} catch (e: IOException) {
    throw reason(e)
} catch (e: SerializationException) {
    throw AgentException.BadAnswer(e)
}

private fun refusal(response: Response): AgentException {
    val error = try {
        response.read(WireError.serializer())
    } catch (e: SerializationException) {
        return AgentException.BadAnswer(e)
    }
    return if (response.code == 403 &&
        error.code == "forbidden"
    ) {
        AgentException.NotPaired(null)
    } else {
        AgentException.Refused(error)
    }
}

/** Tells a wrong key on either side from a network that fails. */
private fun reason(e: IOException): AgentException {
    val causes = generateSequence<Throwable>(e) { it.cause }.take(8).toList()
    return when {
        causes.any { it is WrongKeyException } -> AgentException.WrongNode(e)
        // In TLS 1.3 the node's refusal of the app's key comes as an alert after the handshake.
        causes.any { it is SSLException && it.isCertificateAlert() } -> AgentException.NotPaired(e)
        else -> AgentException.Unreachable(e)
    }
}

/** JSSE and Conscrypt name the alert in their message only. */
private fun Throwable.isCertificateAlert(): Boolean {
    val text = message.orEmpty().lowercase().replace('_', ' ')
    return "alert" in text && ("certificate" in text || "access denied" in text || "unknown ca" in text)
}

/** Asked for no packed answer, OkHttp unpacks none: a little could unfold to a lot. */
internal fun httpClient(identity: Identity, trust: X509TrustManager, timeout: Duration): OkHttpClient =
    OkHttpClient.Builder()
        .sslSocketFactory(tlsContext(identity, trust).socketFactory, trust)
        .hostnameVerifier { _, _ -> true } // the pin has been checked; names say nothing here
        .connectionSpecs(
            listOf(ConnectionSpec.Builder(ConnectionSpec.MODERN_TLS).tlsVersions(TlsVersion.TLS_1_3).build()),
        )
        .protocols(listOf(Protocol.HTTP_1_1))
        .followRedirects(false)
        .addInterceptor { it.proceed(it.request().newBuilder().header("Accept-Encoding", "identity").build()) }
        .connectTimeout(timeout)
        .readTimeout(timeout)
        .callTimeout(timeout)
        .build()

/** A call that is cancelled is so also while its answer is read. */
private suspend fun <T> Call.await(read: (Response) -> T): T = suspendCancellableCoroutine { continuation ->
    continuation.invokeOnCancellation { cancel() }
    enqueue(object : Callback {
        override fun onResponse(call: Call, response: Response) =
            continuation.resumeWith(runCatching { response.use(read) })

        override fun onFailure(call: Call, e: IOException) {
            if (continuation.isActive) continuation.resumeWithException(e)
        }
    })
}
