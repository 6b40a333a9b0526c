package dev.fieldmesh.app

import dev.fieldmesh.core.FakeController
import dev.fieldmesh.core.agent.Admission
import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.Caller
import dev.fieldmesh.core.agent.Finder
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Subnet
import dev.fieldmesh.core.agent.WiFiSink
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.wire.WiFiReading
import dev.fieldmesh.device.PhoneLog
import dev.fieldmesh.device.Pictures
import dev.fieldmesh.device.Recorder
import dev.fieldmesh.device.Session
import dev.fieldmesh.device.Shot
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.emptyFlow
import java.io.File
import java.io.IOException
import kotlin.coroutines.CoroutineContext

/** The app with a key from the JDK's keytool: there is no Android Keystore on a desk. */
class TestApp : Fieldmesh() {
    /** What its camera sees. */
    var seen: Flow<Shot> = emptyFlow()
    override val pictures = Pictures { seen }
    override val reader = Dispatchers.Unconfined

    /** What its worker is to do; null: it does all at once. */
    var work: MutableList<Runnable>? = null
    override val worker = object : CoroutineDispatcher() {
        override fun isDispatchNeeded(context: CoroutineContext) = work != null

        override fun dispatch(context: CoroutineContext, block: Runnable) {
            work?.add(block) ?: block.run()
        }
    }

    /** Where it finds what it is to start; empty at first, as in a build without a node. */
    public override val programs by lazy { File(filesDir, "programs") }

    /** What the controller of a code says to an app. */
    var controller: (PairingCode) -> Admission = { Admission(emptyList()) }

    override suspend fun knock(code: PairingCode) = controller(code)

    /** The controller that serves experimenters. */
    val serving = FakeController()

    override suspend fun serving(caller: Caller, at: Pairing) = serving

    /** The networks that its interfaces are in. */
    var networks = emptyList<Subnet>()

    override val subnets = { networks }

    /** What the phone's networks name, in answer to its questions. */
    val named = MutableSharedFlow<Pairing>(replay = 4)
    override val finder = Finder { named }

    /** What its node tells. */
    val heard = MutableSharedFlow<Heard>(extraBufferCapacity = 64)

    override fun follow(node: AgentClient): Flow<Heard> = heard

    private var process = MainScope()
    override val scope get() = process
    private var living: Session? = null
    private var kept: PhoneLog? = null
    override val session get() = living ?: begin(scope).also { living = it }
    override val log get() = kept ?: PhoneLog(File(filesDir, "logs")).also { kept = it }

    /** What its microphone records; null: another app has it. */
    var spoken: ByteArray? = null

    /** Whether anything was recorded until the end. */
    var isHeard = true

    /** Has the recording break off. */
    var stuck: () -> Unit = {}

    override val recorder = object : Recorder {
        override fun begin(to: File, stuck: () -> Unit) {
            to.writeBytes(spoken ?: throw IOException("another app has the microphone"))
            this@TestApp.stuck = stuck
        }

        override fun end() = isHeard
    }

    private var taking: Attaching? = null
    override val attaching get() = taking ?: attach(scope).also { taking = it }

    /** Ends all that lives as long as the process. Nobody is told, and what was not on the disk is lost. */
    fun die() {
        process.cancel()
        process = MainScope()
        living = null
        kept = null
        taking = null
        work = null
        gpsRuns.value = false
    }

    /** What its own node was told about the Wi-Fi. */
    val told = mutableListOf<WiFiReading>()

    override fun ownNode() = super.ownNode()?.let { WiFiSink(told::add) }

    override fun identity(): Identity = key

    private companion object {
        val key: Identity by lazy { newIdentity("app") }
    }
}
