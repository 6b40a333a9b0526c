package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.AbortRequest
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.ClockReply
import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.PushedFix
import dev.fieldmesh.core.wire.RestoreReport
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.WireError
import dev.fieldmesh.core.wire.WireJson
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.withContext
import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerializationException
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
import java.io.IOException
import java.time.Duration
import javax.net.ssl.SSLException
import javax.net.ssl.X509TrustManager
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException

internal val JSON = "application/json".toMediaType()

/** Why a call did not succeed. The words that a person reads are the screens' affair. */
sealed class AgentException(message: String, cause: Throwable? = null) : IOException(message, cause) {
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
}

/** A page of the node's spool; [last] is where to read on. */
data class RecordPage(val position: SpoolPosition, val lines: List<String>)

/** Calls a node's agent; see protocols/wire/openapi.yaml. Every call is idempotent and can be cancelled. */
class AgentClient(
    pairing: Pairing,
    identity: Identity,
    private val io: CoroutineDispatcher,
    way: () -> Way = { Way.PREFERRED },
    timeout: Duration = Duration.ofSeconds(5),
) : NodeApi,
    FixSink,
    NoteSink {
    private val base = HttpUrl.Builder().scheme("https").host(pairing.host).port(pairing.port).build()
    private val clients = Clients(httpClient(identity, PinnedTrust(pairing.pin), timeout), way)

    override suspend fun status(): NodeStatus = call(get("v1/node"))

    suspend fun clock(): ClockReply = call(get("v1/clock"))

    override suspend fun schedule(run: String): Schedule = call(get("v1/runs/$run/schedule"))

    /** With [known] it waits up to [waitMs] for another version of the view. */
    override suspend fun view(run: String, known: ULong?, waitMs: Long): CampaignView {
        val query = if (known == null) emptyMap() else mapOf("known" to "$known", "wait_ms" to "$waitMs")
        return call(get("v1/runs/$run", query), waitMs)
    }

    suspend fun abort(run: String, request: AbortRequest): CampaignView = call(post("v1/runs/$run/abort", request))

    suspend fun restore(): RestoreReport = call(post("v1/restore"), RESTORE_MS)

    /**
     * Pushes a fix. Its age is of the moment before the call, and the node dates it by its arrival: a call that takes
     * longer than [PUSH] is given up.
     */
    override suspend fun pushFix(fix: PushedFix): Gps = withContext(io) {
        val hurried = clients.now().newBuilder().callTimeout(PUSH).build()
        hurried.exchange(post("v1/gps", fix)) { _, text -> WireJson.decodeFromString(Gps.serializer(), text) }
    }

    override suspend fun note(note: Note): SpoolPosition = call(post("v1/notes", note))

    override suspend fun records(after: SpoolPosition?, limit: Int, waitMs: Long): RecordPage {
        val place = if (after == null) emptyMap() else mapOf("epoch" to after.epoch, "after" to "${after.seq}")
        val request = get("v1/records", place + mapOf("limit" to "$limit", "wait_ms" to "$waitMs"))
        return exchange(request, waitMs) { response, text ->
            val epoch = response.header("Fieldmesh-Epoch") ?: throw SerializationException("no Fieldmesh-Epoch")
            val last =
                response.header("Fieldmesh-Last")?.toLongOrNull() ?: throw SerializationException("no Fieldmesh-Last")
            RecordPage(SpoolPosition(epoch, last), text.lineSequence().filter(String::isNotEmpty).toList())
        }
    }

    private fun get(path: String, query: Map<String, String> = emptyMap()): Request {
        val url = base.newBuilder().addPathSegments(path)
        query.forEach { (name, value) -> url.addQueryParameter(name, value) }
        return Request.Builder().url(url.build()).build()
    }

    private fun post(path: String): Request = post(path, ByteArray(0).toRequestBody())

    private inline fun <reified T> post(path: String, body: T): Request =
        post(path, WireJson.encodeToString(serializer<T>(), body).toByteArray().toRequestBody(JSON))

    private fun post(path: String, body: RequestBody): Request =
        Request.Builder().url(base.newBuilder().addPathSegments(path).build()).post(body).build()

    private suspend inline fun <reified T> call(request: Request, longerMs: Long = 0): T {
        val serializer: KSerializer<T> = serializer()
        return exchange(request, longerMs) { _, text -> WireJson.decodeFromString(serializer, text) }
    }

    /** A wait of [longerMs] comes on top of the usual time. */
    private suspend fun <T> exchange(request: Request, longerMs: Long, read: (Response, String) -> T): T =
        withContext(io) {
            val http = clients.now()
            val client = if (longerMs == 0L) http else http.longer(longerMs)
            client.exchange(request, read)
        }

    private companion object {
        const val RESTORE_MS = 60_000L
        val PUSH: Duration = Duration.ofSeconds(1)
    }
}

private fun OkHttpClient.longer(ms: Long): OkHttpClient {
    val timeout = Duration.ofMillis(readTimeoutMillis + ms)
    return newBuilder().readTimeout(timeout).callTimeout(timeout).build()
}

/** Sends a request and reads its whole answer. What goes wrong is an [AgentException]. */
internal suspend fun <T> OkHttpClient.exchange(request: Request, read: (Response, String) -> T): T = try {
    newCall(request).await().use { response ->
        val text = response.body?.string().orEmpty()
        if (response.code != 200) throw refusal(response.code, text)
        read(response, text)
    }
} catch (e: AgentException) {
    throw e
} catch (e: IOException) {
    throw reason(e)
} catch (e: SerializationException) {
    throw AgentException.BadAnswer(e)
}

private fun refusal(status: Int, text: String): AgentException {
    val error = try {
        WireJson.decodeFromString(WireError.serializer(), text)
    } catch (e: SerializationException) {
        return AgentException.BadAnswer(e)
    }
    return if (status == 403 &&
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

internal fun httpClient(identity: Identity, trust: X509TrustManager, timeout: Duration): OkHttpClient =
    OkHttpClient.Builder()
        .sslSocketFactory(tlsContext(identity, trust).socketFactory, trust)
        .hostnameVerifier { _, _ -> true } // the pin has been checked; names say nothing here
        .connectionSpecs(
            listOf(ConnectionSpec.Builder(ConnectionSpec.MODERN_TLS).tlsVersions(TlsVersion.TLS_1_3).build()),
        )
        .protocols(listOf(Protocol.HTTP_1_1))
        .followRedirects(false)
        .connectTimeout(timeout)
        .readTimeout(timeout)
        .callTimeout(timeout)
        .build()

private suspend fun Call.await(): Response = suspendCancellableCoroutine { continuation ->
    continuation.invokeOnCancellation { cancel() }
    enqueue(object : Callback {
        override fun onResponse(call: Call, response: Response) =
            continuation.resume(response) { _, late, _ -> late.close() }

        override fun onFailure(call: Call, e: IOException) {
            if (continuation.isActive) continuation.resumeWithException(e)
        }
    })
}
